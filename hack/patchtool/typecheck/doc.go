// Package typecheck checks the types of packages from source as the compiler's front end does, without
// generating code: whether the packages compile is known in seconds, where nothing is cached.
package typecheck
