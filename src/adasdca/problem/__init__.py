"""What is to be solved: checked data, the losses, and the frozen problem they make."""
