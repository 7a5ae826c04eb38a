/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c,d,e,f}from"./chunk-TDOA25O5.js";import"./chunk-WUZVI2EN.js";import"./chunk-XR275BPD.js";import"./chunk-ZFB4ECFN.js";import"./chunk-OOJM4CTU.js";export{e as NoResults,f as default,d as interval,c as nameOf,b as outcome,a as percent};
