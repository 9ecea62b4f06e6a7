import numpy as np

def forward(X, W1, b1, W2, b2, y):
    # hidden layer
    z1 = X.dot(W1) + b1
    a1 = np.tanh(z1)
    # output layer
    z2 = a1.dot(W2) + b2
    probs = 1/(1+np.exp(-z2))
    loss = -np.mean(y*np.log(probs) + (1-y)*np.log(1-probs))
    return loss
