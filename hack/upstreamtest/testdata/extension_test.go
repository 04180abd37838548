package proxier

import (
	"context"
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"k8s.io/kubernetes/pkg/proxy"
)

// calls is what the extension was told since it was last checked.
var calls []string

type extension struct{ family v1.IPFamily }

func (e extension) AfterSync(family v1.IPFamily, fullSync bool) {
	if family != e.family {
		panic(fmt.Sprintf("the proxier of %s says %s", e.family, family))
	}
	calls = append(calls, fmt.Sprintf("full=%t", fullSync))
}

func attachExtension(p *Proxier) {
	calls = nil
	p.extensionContext = proxy.ContextWithSyncExtension(context.Background(), extension{p.ipFamily})
}

// checkExtension checks that the extension was told of the last sync, once and rightly, if it succeeded.
func checkExtension(t *testing.T, full, succeeded bool) {
	t.Helper()
	var want []string
	if succeeded {
		want = []string{fmt.Sprintf("full=%t", full)}
	}
	if !slices.Equal(calls, want) {
		t.Errorf("the extension was told of %v, want %v", calls, want)
	}
	calls = nil
}
