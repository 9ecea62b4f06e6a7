"""What stands beside the engine, under the names of `torch.utils`."""
