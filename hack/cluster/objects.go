//go:build linux

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

// ByHand is the annotation of pods that CreatePod made; a [Kubelet] ignores them.
const ByHand = "lab/by-hand"

// CreateNamespace creates a namespace and returns when pods can be created in it.
func (c *ControlPlane) CreateNamespace(ctx context.Context, name string) (*v1.Namespace, error) {
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	namespace, err := c.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	err = wait.PollUntilContextTimeout(ctx, askAgain, patience, true, func(ctx context.Context) (bool, error) {
		_, err := c.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, ignoreNotFound(err)
	})
	if err != nil {
		return nil, fmt.Errorf("namespace %s: wait for its service account: %w", name, err)
	}
	return namespace, nil
}

// DeleteNamespace deletes a namespace and returns when it is gone with all that it had.
// Pods that only a Kubelet can end need one that runs.
func (c *ControlPlane) DeleteNamespace(ctx context.Context, name string) error {
	namespaces := c.client.CoreV1().Namespaces()
	if err := namespaces.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, askAgain, patience, true, func(ctx context.Context) (bool, error) {
		_, err := namespaces.Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), ignoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait for the end of namespace %s: %w", name, err)
	}
	return nil
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// CreateNode creates a node that is ready and has these addresses as its internal ones.
// Invalid ones, such as the IPv6 address of a host that has none, are left out.
func (c *ControlPlane) CreateNode(ctx context.Context, name string, addrs ...netip.Addr) (*v1.Node, error) {
	nodes := c.client.CoreV1().Nodes()
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}}}
	if _, err := nodes.Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() (err error) { // a controller may have tainted it meanwhile
		if node, err = nodes.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		node.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeHostName, Address: name}}
		for _, addr := range valid(addrs) {
			node.Status.Addresses = append(node.Status.Addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: addr.String()})
		}
		node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady"}}
		node, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	})
	return node, err
}

func valid(addrs []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(addrs), func(a netip.Addr) bool { return !a.IsValid() })
}

// NewPod is a pod for [ControlPlane.CreatePod]. When it is deleted it goes at once.
func NewPod(namespace, name, node string, labels map[string]string) *v1.Pod {
	spec := podSpec()
	spec.NodeName = node
	spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Spec: spec}
}

func podSpec() v1.PodSpec {
	return v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "example.com/none"}}}
}

// CreatePod creates a pod that is bound to its node, and has it running and ready at
// these addresses, of which invalid ones are left out. No Kubelet cares about it.
func (c *ControlPlane) CreatePod(ctx context.Context, pod *v1.Pod, addrs ...netip.Addr) (*v1.Pod, error) {
	pod = pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, ByHand, "true")
	pod, err := c.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return c.SetPodStatus(ctx, pod, RunningStatus(pod, true, addrs...))
}

// DeletePod deletes a pod at once, whatever its grace period.
func (c *ControlPlane) DeletePod(ctx context.Context, namespace, name string) error {
	return c.client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
}

// SetPodStatus replaces in the pod's status what is set in the one given.
func (c *ControlPlane) SetPodStatus(ctx context.Context, pod *v1.Pod, status v1.PodStatus) (*v1.Pod, error) {
	patch, err := json.Marshal(map[string]any{
		// The UID keeps it from another pod of that name.
		"metadata": map[string]any{"uid": pod.UID}, "status": status,
	})
	if err != nil {
		return nil, err
	}
	return c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
}

// RunningStatus is the status of a pod that runs at these addresses, ready or not;
// invalid ones are left out.
func RunningStatus(pod *v1.Pod, ready bool, addrs ...netip.Addr) v1.PodStatus {
	now := metav1.NewTime(time.Now())
	status := v1.PodStatus{Phase: v1.PodRunning, StartTime: &now}
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: ready, Started: ptr.To(true),
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: now}},
		})
	}
	for _, addr := range valid(addrs) {
		status.PodIPs = append(status.PodIPs, v1.PodIP{IP: addr.String()})
	}
	if len(status.PodIPs) > 0 {
		status.PodIP = status.PodIPs[0].IP
	}
	isReady := v1.ConditionFalse
	if ready {
		isReady = v1.ConditionTrue
	}
	for _, condition := range []v1.PodCondition{
		{Type: v1.PodScheduled, Status: v1.ConditionTrue}, {Type: v1.PodInitialized, Status: v1.ConditionTrue},
		{Type: v1.ContainersReady, Status: isReady}, {Type: v1.PodReady, Status: isReady},
	} {
		condition.LastTransitionTime = now
		status.Conditions = append(status.Conditions, condition)
	}
	return status
}

// NewService is a Service with these external IPs, of all IP families of the cluster.
// Without ports it has TCP port 80.
func NewService(namespace, name string, selector map[string]string, externalIPs []string, ports ...v1.ServicePort) *v1.Service {
	if len(ports) == 0 {
		ports = []v1.ServicePort{{Name: "tcp", Port: 80, Protocol: v1.ProtocolTCP}}
	}
	return &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1.ServiceSpec{
			Selector: selector, ExternalIPs: externalIPs, Ports: ports,
			IPFamilyPolicy: ptr.To(v1.IPFamilyPolicyPreferDualStack),
		},
	}
}

// CreateService creates a Service and returns it with its cluster IPs.
func (c *ControlPlane) CreateService(ctx context.Context, service *v1.Service) (*v1.Service, error) {
	return c.client.CoreV1().Services(service.Namespace).Create(ctx, service, metav1.CreateOptions{})
}

// NewDeployment is a Deployment whose pods have these labels and only these select it. A
// [Kubelet] runs its pods.
func NewDeployment(namespace, name string, replicas int32, labels map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()},
		},
	}
}

// RolledOut returns when all replicas of a Deployment are of its latest template and
// available, and no others are left but those that terminate.
func (c *ControlPlane) RolledOut(ctx context.Context, namespace, name string) error {
	var last appsv1.DeploymentStatus
	err := wait.PollUntilContextCancel(ctx, askAgain, true, func(ctx context.Context) (bool, error) {
		d, err := c.client.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		last = d.Status
		want := ptr.Deref(d.Spec.Replicas, 1)
		return last.ObservedGeneration >= d.Generation && last.UpdatedReplicas == want &&
			last.AvailableReplicas == want && last.Replicas == want, nil
	})
	if err != nil {
		return fmt.Errorf("roll out %s/%s: %w; %d of its replicas are updated, %d available, %d there", namespace, name, err,
			last.UpdatedReplicas, last.AvailableReplicas, last.Replicas)
	}
	return nil
}

// RestartDeployment does what kubectl rollout restart does.
func (c *ControlPlane) RestartDeployment(ctx context.Context, namespace, name string) error {
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`,
		time.Now().Format(time.RFC3339Nano))
	_, err := c.client.AppsV1().Deployments(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// ScaleDeployment sets the number of replicas.
func (c *ControlPlane) ScaleDeployment(ctx context.Context, namespace, name string, replicas int) error {
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	_, err := c.client.AppsV1().Deployments(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}
