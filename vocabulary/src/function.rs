//! Functions of floating-point numbers. Lowering expands them into basic operations.
//!
//! A row is documentation, variant, name, greatest errors in units in the last place for `f32` and `f64`, and cost. The
//! name is that of the text form, of the method in a kernel and of the expansion in `tilewright_core::math`.

/// Calls a macro with `{ context }` and the rows of all functions of one operand.
#[macro_export]
macro_rules! unary_functions {
    ($callback:ident { $($context:tt)* }) => {
        $callback! {
            { $($context)* }
            /// Reciprocal of the square root.
            Rsqrt rsqrt [1.5, 1.5] Division(2);
            /// Natural exponential.
            Exp exp [1.0, 1.0] Transcendental(1);
            /// Natural logarithm.
            Ln ln [0.85, 1.0] Transcendental(1);
            /// Hyperbolic tangent.
            Tanh tanh [2.7, 4.0] Transcendental(1);
            /// The error function.
            Erf erf [1.3, 2.0] Transcendental(1);
            /// The logistic function `1 / (1 + exp(-x))`.
            Sigmoid sigmoid [2.5, 2.0] Transcendental(1);
            /// Sine of radians.
            Sin sin [1.6, 2.0] Transcendental(1);
            /// Cosine of radians.
            Cos cos [1.6, 2.0] Transcendental(1);
            /// Tangent of radians.
            Tan tan [3.5, 4.0] Transcendental(2);
            /// Arc sine in radians.
            Asin asin [2.2, 3.0] Transcendental(1);
            /// Arc cosine in radians.
            Acos acos [2.0, 3.0] Transcendental(1);
            /// Arc tangent in radians.
            Atan atan [2.3, 3.0] Transcendental(1);
            /// Hyperbolic sine.
            Sinh sinh [3.0, 4.0] Transcendental(1);
            /// Hyperbolic cosine.
            Cosh cosh [2.0, 3.0] Transcendental(1);
            /// Two to a power.
            Exp2 exp2 [1.5, 2.0] Transcendental(1);
            /// The natural exponential minus 1, accurate where that is small.
            ExpM1 exp_m1 [2.0, 3.0] Transcendental(1);
            /// Logarithm to base 2.
            Log2 log2 [2.0, 3.0] Transcendental(1);
            /// Logarithm to base 10.
            Log10 log10 [2.0, 3.0] Transcendental(1);
            /// The natural logarithm of a number plus 1, accurate where that is small.
            Ln1p ln_1p [2.0, 3.0] Transcendental(1);
        }
    };
}

/// Calls a macro with `{ context }` and the rows of all functions of two operands.
#[macro_export]
macro_rules! binary_functions {
    ($callback:ident { $($context:tt)* }) => {
        $callback! {
            { $($context)* }
            /// Angle in radians of the point with the first operand as ordinate and the second as abscissa.
            Atan2 atan2 [2.0, 3.0] Transcendental(1);
            /// The first operand to the power of the second.
            Powf powf [1.5, 2.0] Transcendental(3);
        }
    };
}
