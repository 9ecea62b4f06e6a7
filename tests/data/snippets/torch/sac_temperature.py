alpha_loss = -(log_alpha.exp() * (log_prob + target_entropy).detach()).mean()
