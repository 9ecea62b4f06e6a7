image_features = image_features / image_features.norm(dim=-1, keepdim=True)
text_features = text_features / text_features.norm(dim=-1, keepdim=True)

# cosine similarity as logits
logits_per_image = logit_scale.exp() * image_features @ text_features.t()
logits_per_text = logits_per_image.t()

labels = torch.arange(len(logits_per_image))
loss_i = F.cross_entropy(logits_per_image, labels)
loss_t = F.cross_entropy(logits_per_text, labels)
(loss_i + loss_t) / 2
