"""What a desk or job is asked to do: each a call of the rooms below with plain data in and out, no cells."""

from sfumato.web.tasks import columns, edits, hierarchies, jobs, maps, pictures, scores, start
from sfumato.web.tasks.base import TASKS, Desk

__all__ = ["TASKS", "Desk", "columns", "edits", "hierarchies", "jobs", "maps", "pictures", "scores", "start"]
