s = torch.sort(x)[0]
spread = torch.std(x)
(s[0] + torch.median(x)) / spread
