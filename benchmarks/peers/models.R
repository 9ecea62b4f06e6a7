# Fits a model with R, for benchmarks/models.py; the arguments are the name of the job and the path of the data.
arguments <- commandArgs(trailingOnly = TRUE)
data <- read.csv(arguments[2])
estimate <- switch(arguments[1],
  counts = coef(MASS::glm.nb(n ~ x, data))[["x"]],
  survival = -coef(survival::survreg(survival::Surv(time, ended) ~ x, data))[["x"]],
  subjects = lme4::fixef(lme4::lmer(y ~ x + (x | g), data))[["x"]],
  effects = lme4::fixef(lme4::lmer(y ~ x + (1 | g), data))[["x"]],
  levels = {
    data$g <- factor(data$g)
    start <- list(a = rep(1, nlevels(data$g)), k = 1, c = 0.5)
    coef(nls(y ~ a[g] * exp(-k * x) + c, data, start = start))[["k"]]
  },
  groups = {
    one <- function(rows) coef(nls(y ~ a * exp(-k * x) + c, rows, start = list(a = 1, k = 1, c = 0.5)))[["k"]]
    mean(sapply(split(data, data$g), one))
  }
)
cat(sprintf("%.10g\n", estimate))
