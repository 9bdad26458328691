"""Events to frames, one file a protocol. Pure: any door can resume, because a frame is made from an event."""
