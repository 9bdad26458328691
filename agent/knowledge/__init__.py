"""Knowledge: files become documents, documents chunks, and chunks answers that point at the words they rest on."""
