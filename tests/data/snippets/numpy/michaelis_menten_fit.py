residuals = v - Vmax * S / (Km + S)
chi2 = np.sum(residuals**2)
