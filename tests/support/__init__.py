"""What tests share: a scripted model in two forms from one script, processes bounded in time, builders."""
