"""What it means: facts about a run and its machine, which `report/words/` tells."""
