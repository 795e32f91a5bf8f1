import java.io.File;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.Set;
import org.deidentifier.arx.ARXAnonymizer;
import org.deidentifier.arx.ARXConfiguration;
import org.deidentifier.arx.ARXCostBenefitConfiguration;
import org.deidentifier.arx.ARXPopulationModel;
import org.deidentifier.arx.ARXResult;
import org.deidentifier.arx.AttributeType;
import org.deidentifier.arx.AttributeType.Hierarchy;
import org.deidentifier.arx.Data;
import org.deidentifier.arx.criteria.BasicBLikeness;
import org.deidentifier.arx.criteria.DDisclosurePrivacy;
import org.deidentifier.arx.criteria.DistinctLDiversity;
import org.deidentifier.arx.criteria.EnhancedBLikeness;
import org.deidentifier.arx.criteria.EntropyLDiversity;
import org.deidentifier.arx.criteria.EqualDistanceTCloseness;
import org.deidentifier.arx.criteria.HierarchicalDistanceTCloseness;
import org.deidentifier.arx.criteria.KAnonymity;
import org.deidentifier.arx.criteria.OrderedDistanceTCloseness;
import org.deidentifier.arx.criteria.PrivacyCriterion;
import org.deidentifier.arx.criteria.RecursiveCLDiversity;
import org.deidentifier.arx.metric.Metric;
import org.deidentifier.arx.metric.Metric.AggregateFunction;

/** Times ARX on Adult for bench_recoding.py: {model name, share suppressed, CPU seconds of the last of some rounds}. */
public class ArxModels {
    static final String SENSITIVE = "occupation";

    static Hierarchy hierarchy(String folder, String name) throws Exception {
        return Hierarchy.create(new File(folder, "adult_hierarchy_" + name + ".csv"), StandardCharsets.UTF_8, ';');
    }

    static PrivacyCriterion model(String name, double level, String folder) throws Exception {
        switch (name) {
            case "k": case "payout": return null;
            case "l distinct": return new DistinctLDiversity(SENSITIVE, (int) level);
            case "l entropy": return new EntropyLDiversity(SENSITIVE, level);
            case "l recursive": return new RecursiveCLDiversity(SENSITIVE, level, 3);
            case "t equal": return new EqualDistanceTCloseness(SENSITIVE, level);
            case "t ordered": return new OrderedDistanceTCloseness(SENSITIVE, level);
            case "t hierarchy": return new HierarchicalDistanceTCloseness(SENSITIVE, level, hierarchy(folder, SENSITIVE));
            case "delta": return new DDisclosurePrivacy(SENSITIVE, level);
            case "beta basic": return new BasicBLikeness(SENSITIVE, level);
            case "beta enhanced": return new EnhancedBLikeness(SENSITIVE, level);
            default: throw new IllegalArgumentException(name);
        }
    }

    static String once(String folder, String name, double level, double suppression) throws Exception {
        Data data = Data.create(new File(folder, "adult.csv"), StandardCharsets.UTF_8, ';');
        data.getHandle();
        for (int i = 0; i < data.getHandle().getNumColumns(); i++) {
            String column = data.getHandle().getAttributeName(i);
            boolean learnt = column.equals(SENSITIVE) && !name.equals("k") && !name.equals("payout");
            AttributeType type = learnt ? AttributeType.SENSITIVE_ATTRIBUTE : hierarchy(folder, column);
            data.getDefinition().setAttributeType(column, type);
        }
        ARXConfiguration asked = ARXConfiguration.create();
        asked.addPrivacyModel(new KAnonymity(5));
        PrivacyCriterion more = model(name, level, folder);
        if (more != null) {
            asked.addPrivacyModel(more);
        }
        asked.setSuppressionLimit(suppression);
        if (name.equals("payout")) {
            asked.setCostBenefitConfiguration(ARXCostBenefitConfiguration.create().setPublisherBenefit(1200d)
                .setPublisherLoss(300d).setAdversaryGain(300d).setAdversaryCost(4d));
            asked.setQualityModel(Metric.createPublisherPayoutMetric(false));
        } else {
            asked.setQualityModel(Metric.createLossMetric(AggregateFunction.GEOMETRIC_MEAN));
        }
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        long began = clock.getCurrentThreadCpuTime();
        ARXResult result = new ARXAnonymizer().anonymize(data, asked);
        double seconds = (clock.getCurrentThreadCpuTime() - began) / 1e9;
        String loss = result.isResultAvailable() ? result.getGlobalOptimum().getHighestScore().toString() : "none";
        return String.format(java.util.Locale.ROOT, "%.3f\t%s", seconds, loss);
    }

    /** Distinction and separation of every combination of columns, and how many of these there are. */
    static String combinations(String folder) throws Exception {
        Data data = Data.create(new File(folder, "adult.csv"), StandardCharsets.UTF_8, ';');
        Set<String> columns = new HashSet<>();
        for (int i = 0; i < data.getHandle().getNumColumns(); i++) {
            columns.add(data.getHandle().getAttributeName(i));
        }
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        long began = clock.getCurrentThreadCpuTime();
        ARXPopulationModel people = ARXPopulationModel.create(1_000_000L);
        int found = data.getHandle().getRiskEstimator(people, columns).getAttributeRisks().getAttributeRisks().length;
        double seconds = (clock.getCurrentThreadCpuTime() - began) / 1e9;
        return String.format(java.util.Locale.ROOT, "%.3f\t%d", seconds, found);
    }

    public static void main(String[] arguments) throws Exception {
        String folder = arguments[0];
        int rounds = Integer.parseInt(arguments[1]);
        for (int i = 2; i < arguments.length; i += 3) {
            String found = "";
            double level = Double.parseDouble(arguments[i + 1]), suppression = Double.parseDouble(arguments[i + 2]);
            for (int round = 0; round < rounds; round++) {
                found = arguments[i].equals("combinations") ? combinations(folder)
                    : once(folder, arguments[i], level, suppression);
            }
            System.out.println(arguments[i] + "\t" + suppression + "\t" + found);
        }
    }
}
