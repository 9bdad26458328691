"""`make eval-chat`: forty everyday turns, answered by the default room and by the bare model."""
