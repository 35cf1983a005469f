//! The committed runs against the results of an independent implementation.
