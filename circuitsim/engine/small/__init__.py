"""Small circuits and batches of them: the whole way from columns to certified potentials in one kernel."""
