"""`make eval-bfcl`: the public function-calling set of the package `bfcl-eval`, bare and through a gateway."""
