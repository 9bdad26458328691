"""Office documents in Swedish and German, thirty and forty questions each; eight of them the documents don't answer."""
