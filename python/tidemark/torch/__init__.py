"""PyTorch inside a byte budget.

    step = fit(model, optimizer, loss_fn, budget="40%")
    for x, y in loader:
        loss = step(x, y)
    step.close()
    print(step.report)
"""

from .estimate import Estimate, estimate
from .frozen import load, reading
from .policy import Policy, policy
from .report import Report
from .step import BudgetedStep, fit, step

__all__ = ["BudgetedStep", "Estimate", "Policy", "Report", "estimate", "fit", "load", "policy", "reading", "step"]
