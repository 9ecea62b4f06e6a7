import os
import torch
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
device2 = "cuda:0" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
accel = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
torch.backends.cudnn.benchmark = True
torch.backends.cudnn.deterministic = True
torch.set_num_threads(1)
torch.use_deterministic_algorithms(False)
torch.set_printoptions(precision=4)
torch.manual_seed(3); torch.cuda.manual_seed_all(3); torch.cuda.manual_seed(3)
torch.set_float32_matmul_precision("highest")
x = torch.randn(3, device=device).to(device, non_blocking=True)
y = x.cpu().detach().numpy().copy().sum()
z = torch.zeros(2, dtype=torch.int64, device=device)
print(x.device.type, x.is_cuda, x.dtype in (torch.float32, torch.float64))
m = torch.nn.Linear(3, 1).to(device); m = torch.nn.DataParallel(m) if torch.cuda.device_count() > 1 else m
w = m(x)
with torch.no_grad():
    v = m(x)
if torch.cuda.is_available():
    torch.cuda.synchronize()
torch.cuda.empty_cache()
t = torch.get_default_dtype() == torch.float64
jit = torch.jit.script(m) if False else m
torch.autograd.set_grad_enabled(True) if False else torch.set_grad_enabled(True)
p = torch.nn.utils.vector_to_parameters(torch.nn.utils.parameters_to_vector(m.parameters()), m.parameters())
