from scipy.special import entr, rel_entr

entr(p).sum() - rel_entr(p, q).sum()
