{{- define "nightshift.labels" -}}
app.kubernetes.io/name: nightshift
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}
{{- define "nightshift.selector" -}}
app.kubernetes.io/name: nightshift
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
{{- define "nightshift.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{/* Names of cluster-wide objects contain release and namespace, so that two installations do not collide. */}}
{{- define "nightshift.clusterName" -}}
{{ .Release.Namespace }}-{{ .Release.Name }}
{{- end -}}
{{- define "nightshift.watchesNodes" -}}
{{ or .Values.watchNodes (not .Values.watchNamespace) }}
{{- end -}}
{{/* With watchNamespace, the chart creates no cluster-wide object for warnings. */}}
{{- define "nightshift.warns" -}}
{{ and .Values.admissionWarnings (not .Values.watchNamespace) }}
{{- end -}}
{{/* The permissions of the operator in the namespaces of servers. It has no pods/exec. For an update, the StatefulSet controller deletes
     the pod. The operator deletes it for a scheduled restart and for a requested restore (docs/adr/0020, 0023). The operator creates
     pods that make a node pull images, and deletes them (docs/adr/0038). */}}
{{- define "nightshift.rules" -}}
- apiGroups: [nightshift.dev]
  resources: [papermcservers, plugins]
  verbs: [get, list, watch]
- apiGroups: [nightshift.dev]
  resources: [papermcservers/status, plugins/status]
  verbs: [patch]
# Owner references with blockOwnerDeletion need this where OwnerReferencesPermissionEnforcement is enabled (OpenShift).
- apiGroups: [nightshift.dev]
  resources: [papermcservers/finalizers]
  verbs: [update]
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [get, list, watch, create, patch]
- apiGroups: [apps]
  resources: [controllerrevisions]
  verbs: [get]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [services, persistentvolumeclaims]
  verbs: [get, create, patch]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, create, patch, delete]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create]
# Budgets for evictions (`spec.eviction`).
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, create, patch, delete]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end -}}
