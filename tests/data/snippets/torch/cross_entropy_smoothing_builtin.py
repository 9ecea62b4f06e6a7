class_weights = torch.tensor([1.0, 2.0, 0.5, 1.5])
F.cross_entropy(logits, y, weight=class_weights, label_smoothing=0.1)
