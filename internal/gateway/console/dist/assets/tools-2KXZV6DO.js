/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-JPX2ARAO.js";import"./chunk-WUZVI2EN.js";import"./chunk-XR275BPD.js";import"./chunk-ZFB4ECFN.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
