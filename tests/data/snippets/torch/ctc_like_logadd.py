alpha = log_probs[0]
for t in range(1, log_probs.shape[0]):
    stay = alpha
    move = torch.cat([torch.tensor([-1e9]), alpha[:-1]])
    alpha = torch.logaddexp(stay, move) + log_probs[t]
-alpha[-1]
