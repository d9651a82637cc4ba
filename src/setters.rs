//! Setters of options: `Options::new().durability(Durability::Always).deed_bytes_max(1 << 20)`.

/// For each field a method of its name that sets it. Those after `optional` and `filled` are an `Option`:
/// the setters of the former take it, or what is in it; those of the latter only what is in it, so that
/// `text.parse()?` needs no type. Those after `into` take what makes one.
macro_rules! setters {
    (
        $options:ident { $($field:ident: $kind:ty),* $(,)? }
        optional { $($maybe:ident: $inner:ty),* $(,)? }
        $(filled { $($full:ident: $within:ty),* $(,)? })?
        $(into { $($from:ident: $whole:ty),* $(,)? })?
    ) => {
        impl $options {
            $($crate::setters::setters!(@one $options, $field, $kind, $field);)*
            $($crate::setters::setters!(@one $options, $maybe, impl Into<Option<$inner>>, $maybe.into());)*
            $($($crate::setters::setters!(@one $options, $full, $within, Some($full));)*)?
            $($($crate::setters::setters!(@one $options, $from, impl Into<$whole>, $from.into());)*)?
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
