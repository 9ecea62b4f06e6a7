import math
import torch

t = torch.linspace(0, 1, 256)
signal = torch.sin(2 * math.pi * 20 * t) + 0.5 * torch.sin(2 * math.pi * 50 * t)
signal.requires_grad_(True)
window = torch.hann_window(64)
S = torch.stft(signal, n_fft=64, hop_length=16, win_length=64, window=window, return_complex=True)
print(S.is_complex())
power = S.abs().pow(2)
power.sum().backward()
g = signal.grad
mag = S.abs()
back = torch.istft(S, n_fft=64, hop_length=16, win_length=64, window=window, length=256)
print(torch.allclose(back, signal, atol=1e-6))
spec = torch.fft.rfft(signal)
freqs = torch.fft.rfftfreq(256, d=1 / 256)
peak = freqs[spec.abs().argmax()]
filtered = torch.fft.irfft(spec * (freqs < 30), n=256)
hamming = torch.hamming_window(16)
blackman = torch.blackman_window(16)
bart = torch.bartlett_window(16)
symmetric = torch.hann_window(9, periodic=False), torch.hann_window(1), torch.hamming_window(8, False)
batch = torch.randn(2, 100)
plain = torch.stft(batch, 16, return_complex=True)
parts = torch.stft(batch, 16, hop_length=5, win_length=12, window=torch.hamming_window(12), center=False,
                   normalized=True, onesided=False, return_complex=False)
wide = torch.stft(batch, 16, pad_mode="constant", onesided=False, return_complex=True)
rows = torch.istft(plain, 16, length=100)
longer = torch.istft(plain, 16, length=104)
print(torch.allclose(rows, batch), torch.allclose(torch.istft(wide, 16, onesided=False, length=100), batch))
whole = torch.istft(wide, 16, onesided=False, return_complex=True)
with_norm = torch.istft(torch.stft(batch, 16, normalized=True, return_complex=True), 16, normalized=True)
target = torch.stft(torch.sin(torch.arange(64.0) * 0.3), 16, return_complex=True).abs()
x = torch.randn(64, requires_grad=True)
w = torch.hann_window(16, requires_grad=True)
optimizer = torch.optim.Adam([x], lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    loss = (torch.stft(x, 16, window=w, return_complex=True).abs() - target).pow(2).mean()
    loss.backward()
    optimizer.step()
slope = torch.autograd.grad(torch.istft(torch.stft(x, 16, window=w, return_complex=True), 16, window=w).pow(2).sum(), x)[0]
