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

package app

import (
	"context"

	kubeproxyconfig "k8s.io/kubernetes/pkg/proxy/apis/config"
)

// Config returns the configuration that the flags are bound to. After Complete it is the
// one that Validate checks and Run uses; changes made to it before Run take effect.
func (o *Options) Config() *kubeproxyconfig.KubeProxyConfiguration {
	return o.config
}

// Cleanup removes the rules that no proxy mode but the configured one uses, or those of
// every mode if all is true.
func (o *Options) Cleanup(ctx context.Context, all bool) error {
	return platformCleanup(ctx, o.config.Mode, all)
}

// NewProxyServer returns the ProxyServer that Run would run. Its Proxier may be replaced
// before its own Run is called. Unlike Run it neither cleans up the rules of other proxy
// modes nor watches the configuration file.
func (o *Options) NewProxyServer(ctx context.Context) (*ProxyServer, error) {
	return newProxyServer(ctx, o.config, o.master, o.InitAndExit, o.flagz)
}
