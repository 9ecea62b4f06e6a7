def simulate(setpoint, kp, ki, kd, dt=0.1, steps=15):
    value = 0.0
    integral = 0.0
    prev_error = setpoint
    cost = 0.0
    for _ in range(steps):
        error = setpoint - value
        integral += error * dt
        derivative = (error - prev_error) / dt
        u = kp * error + ki * integral + kd * derivative
        value += dt * (u - value)
        prev_error = error
        cost += error**2 * dt
    return cost
