"""Front ends. They translate between people or protocols and the gate; they never decide."""
