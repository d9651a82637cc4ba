//! Setters of options: `Options::new().durability(Durability::Always).deed_bytes_max(1 << 20)`.

/// For each field a method of its name that sets it. Those after `optional` are an `Option`, and their
/// setters take what is in it.
macro_rules! setters {
    (
        $options:ident { $($field:ident: $kind:ty),* $(,)? }
        optional { $($maybe:ident: $inner:ty),* $(,)? }
    ) => {
        impl $options {
            $($crate::setters::setters!(@one $options, $field, $kind, $field);)*
            $($crate::setters::setters!(@one $options, $maybe, $inner, Some($maybe));)*
        }
    };
    (@one $options:ident, $field:ident, $kind:ty, $value:expr) => {
        #[doc = concat!(
            "Set [`", stringify!($field), "`](", stringify!($options), "#structfield.",
            stringify!($field), ")."
        )]
        #[must_use]
        pub fn $field(mut self, $field: $kind) -> Self {
            self.$field = $value;
            self
        }
    };
}

pub(crate) use setters;
