use tilewright::tensor_kernel;

struct S;

impl S {
    #[tensor_kernel]
    fn f(&self, a: &Tensor<f32, N>) -> Tensor<f32, N> {
        let mut c = Tensor::zeros();
        c[[0]] = a[[0]];
        c
    }
}

fn main() {}
