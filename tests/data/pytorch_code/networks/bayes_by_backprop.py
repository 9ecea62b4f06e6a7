import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Gamma, Normal, kl_divergence


class Linear_BBB(nn.Module):
    """Layer of our BNN."""

    def __init__(self, input_features, output_features, prior_var=1.0):
        super().__init__()
        self.input_features = input_features
        self.output_features = output_features

        # initialize mu and rho parameters for the weights of the layer
        self.w_mu = nn.Parameter(torch.zeros(output_features, input_features))
        self.w_rho = nn.Parameter(torch.zeros(output_features, input_features))
        self.b_mu = nn.Parameter(torch.zeros(output_features))
        self.b_rho = nn.Parameter(torch.zeros(output_features))

        # initialize weight samples (these will be calculated whenever the layer makes a prediction)
        self.w = None
        self.b = None

        # initialize prior distribution for all of the weights and biases
        self.prior = torch.distributions.Normal(0, prior_var)

    def forward(self, input):
        # sample weights
        w_epsilon = Normal(0, 1).sample(self.w_mu.shape)
        self.w = self.w_mu + torch.log(1 + torch.exp(self.w_rho)) * w_epsilon

        # sample bias
        b_epsilon = Normal(0, 1).sample(self.b_mu.shape)
        self.b = self.b_mu + torch.log(1 + torch.exp(self.b_rho)) * b_epsilon

        # record log prior by evaluating log pdf of prior at sampled weight and bias
        w_log_prior = self.prior.log_prob(self.w)
        b_log_prior = self.prior.log_prob(self.b)
        self.log_prior = torch.sum(w_log_prior) + torch.sum(b_log_prior)

        # record log variational posterior
        self.w_post = Normal(self.w_mu.data, torch.log(1 + torch.exp(self.w_rho)))
        self.b_post = Normal(self.b_mu.data, torch.log(1 + torch.exp(self.b_rho)))
        self.log_post = self.w_post.log_prob(self.w).sum() + self.b_post.log_prob(self.b).sum()

        return F.linear(input, self.w, self.b)


class MLP_BBB(nn.Module):
    def __init__(self, hidden_units, noise_tol=0.1, prior_var=1.0):
        super().__init__()
        self.hidden = Linear_BBB(1, hidden_units, prior_var=prior_var)
        self.out = Linear_BBB(hidden_units, 1, prior_var=prior_var)
        self.noise_tol = noise_tol

    def forward(self, x):
        x = torch.sigmoid(self.hidden(x))
        x = self.out(x)
        return x

    def log_prior(self):
        return self.hidden.log_prior + self.out.log_prior

    def log_post(self):
        return self.hidden.log_post + self.out.log_post

    def sample_elbo(self, input, target, samples):
        outputs = torch.zeros(samples, target.shape[0])
        log_priors = torch.zeros(samples)
        log_posts = torch.zeros(samples)
        log_likes = torch.zeros(samples)
        for i in range(samples):
            outputs[i] = self(input).reshape(-1)
            log_priors[i] = self.log_prior()
            log_posts[i] = self.log_post()
            log_likes[i] = Normal(outputs[i], self.noise_tol).log_prob(target.reshape(-1)).sum()
        log_prior = log_priors.mean()
        log_post = log_posts.mean()
        log_like = log_likes.mean()
        loss = log_post - log_prior - log_like
        return loss


net = MLP_BBB(8, prior_var=10)
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
x = torch.tensor([[-2.0], [-1.8], [-1.0], [1.0], [1.8], [2.0]])
y = -x.pow(4) + 3 * x.pow(2) + 1
losses = []
for epoch in range(3):
    optimizer.zero_grad()
    loss = net.sample_elbo(x, y, 2)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

# A variational posterior of a rate.
log_a = torch.tensor(0.5, requires_grad=True)
log_b = torch.tensor(-0.2, requires_grad=True)
posterior, prior = Gamma(log_a.exp(), log_b.exp()), Gamma(torch.tensor(2.0), torch.tensor(1.0))
divergence = kl_divergence(posterior, prior) + posterior.entropy()
divergence.backward()
