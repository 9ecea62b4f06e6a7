def lif(I, tau, v_th, dt=0.5):
    v = torch.zeros(())
    trace = []
    for i in I:
        v = v + dt / tau * (-v + i)
        if v > v_th:
            v = v - v_th
        trace.append(v)
    return torch.stack(trace)
