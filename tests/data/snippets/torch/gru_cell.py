import torch

def gru_cell(x, h, w_ih, w_hh, b_ih, b_hh):
    gi = w_ih @ x + b_ih
    gh = w_hh @ h + b_hh
    i_r, i_z, i_n = gi.chunk(3)
    h_r, h_z, h_n = gh.chunk(3)
    r = torch.sigmoid(i_r + h_r)
    z = torch.sigmoid(i_z + h_z)
    n = torch.tanh(i_n + r * h_n)
    return (1 - z) * n + z * h
