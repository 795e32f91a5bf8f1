"""What several methods say to those who analyse their releases."""

COLUMNS_KEPT = (
    "Each column keeps its values, so statistics of one column hold; correlations and other relations "
    "between columns are weaker."
)
FEWER_CELLS = (
    "Cells are missing, and not at random: they belong to rare combinations. Do not drop incomplete records; "
    "impute the cells, or model why they are missing."
)
GROUPED = (
    "Values are wider groups, the same for all records: treat them as grouped. Taking the middle of a range "
    "biases variances and slopes."
)
RANGES = (
    "Values are ranges or groups that differ from record to record: treat them as interval-censored or "
    "grouped. Taking the middle of a range biases variances and slopes."
)
SYNTHETIC = (
    "Values are synthetic: only relations that the model has can be found again. One copy understates the "
    "uncertainty of an estimate; with several copies, combine their estimates."
)
