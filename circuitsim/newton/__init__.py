"""Newton's method on circuits with smooth devices in one kernel: from columns and curves to a certified state."""
