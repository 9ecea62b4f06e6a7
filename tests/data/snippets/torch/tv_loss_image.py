tv_h = torch.abs(img[1:, :] - img[:-1, :]).sum()
tv_w = torch.abs(img[:, 1:] - img[:, :-1]).sum()
loss = tv_h + tv_w
