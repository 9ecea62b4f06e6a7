total = 0
for i, f in enumerate(forces):
    if f <= 0:
        continue
    if i > 3:
        break
    total += f**2 / (2*k)
result = total * k
