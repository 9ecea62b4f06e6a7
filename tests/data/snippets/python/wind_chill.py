def wind_chill(temp, wind):
    if temp > 50 or wind < 3:
        return temp
    return 35.74 + 0.6215*temp - 35.75*wind**0.16 + 0.4275*temp*wind**0.16
