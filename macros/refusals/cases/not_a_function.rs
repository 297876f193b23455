use tilewright::tensor_kernel;

#[tensor_kernel]
struct S;

fn main() {}
