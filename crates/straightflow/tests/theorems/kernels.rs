//! Kernels: their derivatives and spectra against their values, and how they are written.

use straightflow::kernel::{
    Bandwidth, Energy, Kernel, KernelError, KernelFamily, Laplace, Mixture, RationalQuadratic, Rbf,
};

fn kernels() -> Vec<Box<dyn Kernel>> {
    vec![
        Box::new(Rbf::new(0.4).unwrap()),
        Box::new(Rbf::new(1.7).unwrap()),
        Box::new(Laplace::new(0.9).unwrap()),
        Box::new(RationalQuadratic::new(1.3, 0.8).unwrap()),
        Box::new(Mixture::new(&[(0.5, 0.6), (1.5, 2.0)]).unwrap()),
        Box::new(Energy),
    ]
}

#[test]
fn derivatives_and_drops_agree_with_differences_of_the_value() {
    for kernel in kernels() {
        for d in [-3.2, -0.4, 0.3, 1.0, 5.5] {
            let step = 1e-5;
            let slope = (kernel.value(d + step) - kernel.value(d - step)) / (2.0 * step);
            assert!(
                (kernel.derivative(d) - slope).abs() < 1e-9,
                "{kernel:?} {d}"
            );
            for e in [-0.7, 0.2, 1.0] {
                let direct = kernel.value(d) - kernel.value(d + e);
                assert!(
                    (kernel.fall(d, e) - direct).abs() < 1e-14,
                    "{kernel:?} {d} {e}"
                );
            }
            // For a tiny step the drop keeps its leading digits.
            let tiny = 1e-13;
            let expected = -tiny * kernel.derivative(d);
            let error = (kernel.fall(d, tiny) - expected).abs();
            assert!(error <= 1e-9 * expected.abs() + 1e-25, "{kernel:?} {d}");
        }
        assert_eq!(kernel.derivative(0.0), 0.0);
    }
}

#[test]
fn spectra_are_the_sums_over_the_lattice() {
    for kernel in kernels() {
        if kernel.is_conditional() {
            continue;
        }
        for omega in [0.3, 1.0, 2.5, std::f64::consts::PI] {
            // Damping by a wide Gaussian makes the slow sums converge; its effect at these
            // frequencies is of order 1e-7.
            let damping = |k: f64| (-(k / 3e3) * (k / 3e3) / 2.0).exp();
            let (mut even, mut odd) = (kernel.value(0.0), 0.0);
            for k in 1..20_000 {
                let k = f64::from(k);
                even += 2.0 * kernel.value(k) * damping(k) * (k * omega).cos();
                odd -= 2.0 * kernel.derivative(k) * damping(k) * (k * omega).sin();
            }
            let spectrum = kernel.spectrum(omega);
            assert!((spectrum.even - even).abs() < 2e-6, "{kernel:?} {omega}");
            assert!((spectrum.odd - odd).abs() < 2e-6, "{kernel:?} {omega}");
        }
    }
}

#[test]
fn bad_parameters_are_refused() {
    for bad in [0.0, -1.0, f64::INFINITY] {
        assert_eq!(Rbf::new(bad), Err(KernelError::Bandwidth(bad)));
        assert_eq!(Laplace::new(bad), Err(KernelError::Bandwidth(bad)));
        assert_eq!(
            RationalQuadratic::new(bad, 1.0).unwrap_err(),
            KernelError::Bandwidth(bad)
        );
        assert_eq!(
            Mixture::new(&[(1.0, 1.0), (1.0, bad)]).unwrap_err(),
            KernelError::Bandwidth(bad)
        );
        assert_eq!(
            Mixture::new(&[(bad, 1.0)]).unwrap_err(),
            KernelError::Weight(bad)
        );
    }
    assert!(matches!(Rbf::new(f64::NAN), Err(KernelError::Bandwidth(_))));
    assert_eq!(Mixture::new(&[]).unwrap_err(), KernelError::EmptyMixture);
    assert_eq!(
        RationalQuadratic::new(1.0, 0.0).unwrap_err(),
        KernelError::Exponent(0.0)
    );
}

#[test]
fn bandwidths_come_back_from_text() {
    for text in ["1.5", "0.25", "3sd", "0.5sd", "2.25sd>0.4"] {
        let rule: Bandwidth = text.parse().unwrap();
        assert_eq!(rule.to_string(), text);
        assert_eq!(Bandwidth::try_from(String::from(rule)), Ok(rule));
    }
}

#[test]
fn bad_bandwidths_are_refused() {
    for text in ["", "wide", "sd", "3sd<1", "3sd>", "3 sd 4"] {
        let refused = KernelError::BandwidthText(text.to_owned());
        assert_eq!(text.parse::<Bandwidth>(), Err(refused), "{text}");
    }
    for (text, number) in [("0", 0.0), ("-1", -1.0), ("0sd", 0.0), ("3sd>-2", -2.0)] {
        let refused = KernelError::Bandwidth(number);
        assert_eq!(text.parse::<Bandwidth>(), Err(refused), "{text}");
    }
}

#[test]
fn kernels_come_back_from_text() {
    for text in [
        "rbf",
        "laplace",
        "energy",
        "rational-quadratic:0.5",
        "mixture:0.5+1+2",
    ] {
        let family: KernelFamily = text.parse().unwrap();
        assert_eq!(family.to_string(), text);
    }
}

#[test]
fn bad_kernels_are_refused() {
    for text in [
        "",
        "gauss",
        "rbf:2",
        "mixture:",
        "mixture:1+x",
        "rational-quadratic:",
    ] {
        let refused = KernelError::KernelText(text.to_owned());
        assert_eq!(text.parse::<KernelFamily>(), Err(refused), "{text}");
    }
    let zero = "mixture:1+0".parse::<KernelFamily>();
    assert_eq!(zero, Err(KernelError::Bandwidth(0.0)));
    let flat = "rational-quadratic:0".parse::<KernelFamily>();
    assert_eq!(flat, Err(KernelError::Exponent(0.0)));
}
