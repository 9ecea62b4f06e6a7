import numpy as np
kx = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
ky = kx.T

def sobel(img):
    h, w = img.shape
    g = np.zeros((h - 2, w - 2))
    for i in range(h - 2):
        for j in range(w - 2):
            patch = img[i:i+3, j:j+3]
            gx = (patch * kx).sum()
            gy = (patch * ky).sum()
            g[i, j] = np.sqrt(gx**2 + gy**2 + 1e-6)
    return g.mean()
