/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c,d,e,f}from"./chunk-CA4TFIIK.js";import"./chunk-MVWBEPCP.js";import"./chunk-GXWSIOA4.js";import"./chunk-3GWUOFJB.js";import"./chunk-OOJM4CTU.js";export{e as NoResults,f as default,d as interval,c as nameOf,b as outcome,a as percent};
