/*
Copyright The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package proxy

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// SyncExtension is told when a proxier has written its rules.
type SyncExtension interface {
	// AfterSync is called by the proxier of ipFamily after each sync that wrote all of
	// its rules; fullSync tells that it also rewrote what other syncs take for granted,
	// as at the start, after a failed sync and after a flush. The proxier's lock is
	// held: AfterSync must neither block nor call the proxier.
	AfterSync(ipFamily v1.IPFamily, fullSync bool)
}

type syncExtensionKey struct{}

// ContextWithSyncExtension returns a context that gives extension to every proxier
// constructed with it.
func ContextWithSyncExtension(ctx context.Context, extension SyncExtension) context.Context {
	return context.WithValue(ctx, syncExtensionKey{}, extension)
}

// AfterSync tells the extension that ctx carries, if any. A nil ctx carries none.
func AfterSync(ctx context.Context, ipFamily v1.IPFamily, fullSync bool) {
	if ctx == nil {
		return
	}
	if extension, ok := ctx.Value(syncExtensionKey{}).(SyncExtension); ok {
		extension.AfterSync(ipFamily, fullSync)
	}
}
