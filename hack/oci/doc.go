// Package oci writes container images as an OCI image archive (image-spec v1), which container runtimes import without a
// registry. The same content gives the same bytes. It neither reads images nor speaks to registries.
package oci
