"""An example of a Stepgate extension."""
