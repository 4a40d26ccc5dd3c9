"""What commands and pages are made of: shared by the faces and by the features that bring some of their own."""
